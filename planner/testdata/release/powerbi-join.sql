select "$Outer"."zip" as "zip", "$Outer"."age" as "age", "$Inner"."city" as "city"
from 
(
    select "_"."zip" as "zip", "_"."age" as "age"
    from "public"."patients" "_"
    where "_"."sex" = 'male'
) "$Outer"
left outer join "public"."zip_city" "$Inner" on ("$Outer"."zip" = "$Inner"."zip")
