SELECT code FROM conditions WHERE day > '2020-01-01'
