list(old_usage = TRUE)
