select "rows"."sex" as "sex", count(1) as "a0" from (select "_"."sex" from "public"."patients" "_" where "_"."age" >= 18 and "_"."sex" is not null) "rows" group by "sex"
