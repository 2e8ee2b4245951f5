SELECT sum(pay) FILTER (WHERE unit = 'icu') FROM staff;
