SELECT sum(hours) FROM shifts
