SELECT any_value(pay), count(*) FROM staff
