SELECT e.years, z.city FROM elderly e JOIN zip_city z USING (zip)
