"""Run folders, and the processes that fill them: single runs, sweeps and tuning."""
