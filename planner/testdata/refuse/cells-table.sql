TABLE staff
