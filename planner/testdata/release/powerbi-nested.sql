select "_"."sex",
    "_"."a0"
from 
(
    select "rows"."sex" as "sex",
        count(*) as "a0"
    from 
    (
        select "$Table"."age" as "age",
            "$Table"."sex" as "sex"
        from "public"."patients" "$Table"
    ) "rows"
    group by "sex"
) "_"
where not "_"."a0" is null
limit 1000001
