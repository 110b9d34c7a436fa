"""Pages, figures and terminal output, made from run folders."""
