select count(distinct("rows"."Odd Name")) + cast(max(case when "rows"."Odd Name" is null then 1 else 0 end) as bigint) as "a0" from "public"."patients" as "rows"
