-- run as LENDING_USER, database LENDING_DB, every night at 2
begin;
create table if not exists stock_days (day date, work_id integer, on_shelf bigint);
delete from stock_days where day = current_date;
insert into stock_days select current_date, work_id, on_shelf from reporting.works;
commit;
