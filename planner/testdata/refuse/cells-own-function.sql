SELECT peek(count(*)) FROM staff
