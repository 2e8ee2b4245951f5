select "_".* from (select "$Table".* from "public"."patients" "$Table") "_" limit 1000
