"""Tables, figures and page sections of jumping runs."""
