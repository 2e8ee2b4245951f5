SELECT pg_sleep(count(*)) FROM staff
