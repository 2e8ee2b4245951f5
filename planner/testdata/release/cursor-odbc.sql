BEGIN;declare "SQL_CUR0x1" cursor with hold for SELECT age FROM patients;fetch 100 in "SQL_CUR0x1"
