SELECT u.zip FROM patients JOIN zip_city USING (zip) AS u
