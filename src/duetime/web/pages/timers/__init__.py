"""The page that lists timers: filters, list, columns and exports."""
