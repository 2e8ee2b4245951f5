SELECT unit, pay FROM staff
