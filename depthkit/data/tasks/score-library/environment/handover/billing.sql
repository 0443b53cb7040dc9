--
-- PostgreSQL database dump
--

-- Dumped from database version 9.6.24
-- Dumped by pg_dump version 9.6.24

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: plpgsql; Type: EXTENSION; Schema: -; Owner: 
--

CREATE EXTENSION IF NOT EXISTS plpgsql WITH SCHEMA pg_catalog;


--
-- Name: EXTENSION plpgsql; Type: COMMENT; Schema: -; Owner: 
--

COMMENT ON EXTENSION plpgsql IS 'PL/pgSQL procedural language';


--
-- Name: receipt_text(oid, numeric); Type: FUNCTION; Schema: public; Owner: billing_app
--

CREATE FUNCTION public.receipt_text(nr oid, amount numeric) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$ select 'Quittung ' || nr || ': ' || to_char(amount, 'FM9990.00') || ' EUR' $$;


ALTER FUNCTION public.receipt_text(nr oid, amount numeric) OWNER TO billing_app;

SET default_tablespace = '';

SET default_with_oids = true;

--
-- Name: receipts; Type: TABLE; Schema: public; Owner: billing_app
--

CREATE TABLE public.receipts (
    member_id integer NOT NULL,
    amount numeric(8,2) NOT NULL,
    paid_on date NOT NULL,
    note text
);


ALTER TABLE public.receipts OWNER TO billing_app;

SET default_with_oids = false;

--
-- Name: tariffs; Type: TABLE; Schema: public; Owner: billing_app
--

CREATE TABLE public.tariffs (
    valid_from date NOT NULL,
    per_copy numeric(6,2) NOT NULL,
    remark text
);


ALTER TABLE public.tariffs OWNER TO billing_app;

--
-- Data for Name: receipts; Type: TABLE DATA; Schema: public; Owner: billing_app
--

COPY public.receipts (member_id, amount, paid_on, note) WITH OIDS FROM stdin;
16921	115	4.50	2016-03-02	\N
16928	115	3.50	2016-04-13	Notensatz verloren
16929	115	2.00	2016-04-14	\N
16930	79	3.50	2016-04-28	\N
16931	7	2.00	2016-05-06	\N
16932	109	6.00	2016-05-12	Mahnung
16933	73	2.00	2016-06-24	\N
16934	100	6.00	2016-07-13	\N
16936	16	2.00	2016-07-19	\N
16937	115	2.00	2016-08-22	Spende
16944	16	12.00	2016-09-04	\N
16945	49	7.50	2016-10-06	\N
16946	4	2.00	2016-11-10	Notensatz verloren
16947	31	4.50	2016-11-24	Mahnung
16948	104	2.00	2016-12-28	Mahnung
16949	13	6.00	2016-12-30	Spende
16950	20	4.50	2017-01-05	\N
16951	43	4.50	2017-01-11	\N
16958	85	3.50	2017-01-15	Mahnung
16959	13	7.50	2017-01-17	\N
16966	94	7.50	2017-02-09	Mahnung
16973	13	6.00	2017-03-22	Spende
16974	10	2.00	2017-04-30	\N
16975	73	7.50	2017-06-06	\N
16977	97	6.00	2017-07-07	\N
16978	37	3.50	2017-08-20	\N
16979	106	4.50	2017-09-15	Spende
16980	83	3.50	2017-09-17	\N
16981	83	7.50	2017-10-07	Spende
16988	100	6.00	2017-10-24	Mahnung
16995	55	12.00	2017-11-26	\N
16997	62	7.50	2017-12-16	\N
16998	118	2.00	2018-01-03	Mahnung
16999	10	3.50	2018-01-29	Mahnung
17000	49	4.50	2018-02-10	Notensatz verloren
17007	73	2.00	2018-03-04	\N
17008	83	12.00	2018-04-06	\N
17015	1	7.50	2018-04-13	Mahnung
17016	52	6.00	2018-05-25	\N
17018	43	12.00	2018-06-09	Notensatz verloren
17019	83	7.50	2018-06-25	Spende
17021	118	7.50	2018-07-05	\N
17022	91	4.50	2018-08-08	Spende
17023	41	4.50	2018-09-07	\N
17024	16	2.00	2018-10-23	\N
17025	79	12.00	2018-10-27	Notensatz verloren
17026	49	4.50	2018-12-02	\N
17027	67	12.00	2019-01-04	\N
17028	79	12.00	2019-02-16	Spende
17035	73	3.50	2019-03-17	Mahnung
17037	115	6.00	2019-04-01	\N
17038	28	3.50	2019-05-11	\N
17039	97	3.50	2019-05-30	Spende
17040	76	3.50	2019-06-18	Spende
17041	16	3.50	2019-07-22	\N
17048	85	6.00	2019-08-13	\N
17049	1	3.50	2019-09-14	\N
17050	13	12.00	2019-10-11	\N
17051	55	4.50	2019-10-21	\N
17058	52	2.00	2019-10-22	Notensatz verloren
17059	64	4.50	2019-10-31	\N
17060	73	6.00	2019-11-25	Notensatz verloren
17061	70	4.50	2019-12-15	Notensatz verloren
17062	97	3.50	2020-01-30	\N
17063	28	12.00	2020-02-10	Spende
17070	67	3.50	2020-02-16	\N
17072	79	3.50	2020-03-13	Mahnung
17073	112	12.00	2020-04-16	\N
17074	4	3.50	2020-05-18	Spende
17075	115	2.00	2020-06-22	Notensatz verloren
17076	46	2.00	2020-07-13	\N
17077	55	7.50	2020-08-14	\N
17084	43	7.50	2020-09-29	\N
17085	115	7.50	2020-10-04	Notensatz verloren
17086	46	7.50	2020-11-05	Mahnung
17088	115	2.00	2020-11-07	Spende
17089	37	12.00	2020-12-20	Notensatz verloren
17090	34	4.50	2020-12-27	Mahnung
17091	1	7.50	2021-01-14	\N
17093	31	2.00	2021-01-24	\N
17094	88	4.50	2021-02-04	Notensatz verloren
17095	91	4.50	2021-02-18	Spende
17096	7	12.00	2021-04-04	\N
17098	88	12.00	2021-05-20	\N
17105	58	6.00	2021-05-22	\N
17106	85	4.50	2021-06-25	\N
17107	115	12.00	2021-07-13	Spende
17108	118	3.50	2021-07-17	\N
17115	58	3.50	2021-08-07	Mahnung
17117	13	6.00	2021-09-16	Notensatz verloren
17118	91	7.50	2021-10-24	Notensatz verloren
17119	83	3.50	2021-10-28	\N
17121	16	12.00	2021-10-31	Notensatz verloren
17122	4	4.50	2021-11-24	\N
17124	62	3.50	2021-12-16	\N
17125	83	12.00	2022-01-05	Notensatz verloren
\.


--
-- Data for Name: tariffs; Type: TABLE DATA; Schema: public; Owner: billing_app
--

COPY public.tariffs (valid_from, per_copy, remark) FROM stdin;
2009-01-01	0.05	\N
2014-07-01	0.10	Beschluss vom 12. Juni
2019-01-01	0.15	\N
\.


--
-- Name: tariffs tariffs_pkey; Type: CONSTRAINT; Schema: public; Owner: billing_app
--

ALTER TABLE ONLY public.tariffs
    ADD CONSTRAINT tariffs_pkey PRIMARY KEY (valid_from);


--
-- Name: receipts_paid_on_idx; Type: INDEX; Schema: public; Owner: billing_app
--

CREATE INDEX receipts_paid_on_idx ON public.receipts USING btree (paid_on);


--
-- PostgreSQL database dump complete
--

