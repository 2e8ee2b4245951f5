SELECT current_date, current_user, session_user, localtime(0), age FROM patients
