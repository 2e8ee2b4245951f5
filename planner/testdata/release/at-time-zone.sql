SELECT birth_date::timestamptz AT TIME ZONE 'UTC' FROM patients
