SELECT unit, sex, count(*) FROM staff WHERE unit <> 'icu' GROUP BY unit, sex;
