SET DateStyle = 'ISO'; SET extra_float_digits = 2; SHOW transaction_isolation
