SELECT city FROM zip_city WHERE zip = '10000'
