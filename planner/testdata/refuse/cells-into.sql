SELECT count(*) INTO TEMP kept FROM staff
