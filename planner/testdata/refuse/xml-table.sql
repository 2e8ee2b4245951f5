SELECT x.* FROM patients, XMLTABLE('/a' PASSING diagnosis COLUMNS b text) x
