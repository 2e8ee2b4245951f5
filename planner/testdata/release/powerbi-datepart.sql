select cast(date_part('year', "_"."birth_date") as int) as "Year", count(1) as "a0" from "public"."patients" "_" group by cast(date_part('year', "_"."birth_date") as int)
