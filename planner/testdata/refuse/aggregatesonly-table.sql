TABLE staff;
