SET extra_float_digits = 3
