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
-- Name: reporting; Type: SCHEMA; Schema: -; Owner: lending_app
--

CREATE SCHEMA reporting;


ALTER SCHEMA reporting OWNER TO lending_app;

--
-- Name: overdue_days(date, integer); Type: FUNCTION; Schema: public; Owner: lending_app
--

CREATE FUNCTION public.overdue_days(taken date, days integer) RETURNS integer
    LANGUAGE plpgsql STABLE
    AS $$
begin
  -- 28 days until 2014, four months since
  return greatest(0, current_date - taken - days);
end
$$;


ALTER FUNCTION public.overdue_days(taken date, days integer) OWNER TO lending_app;

--
-- Name: array_accum(anyelement); Type: AGGREGATE; Schema: public; Owner: lending_app
--

CREATE AGGREGATE public.array_accum(anyelement) (
    SFUNC = array_append,
    STYPE = anyarray,
    INITCOND = '{}'
);


ALTER AGGREGATE public.array_accum(anyelement) OWNER TO lending_app;

SET default_tablespace = '';

SET default_with_oids = false;

--
-- Name: loans; Type: TABLE; Schema: public; Owner: lending_app
--

CREATE TABLE public.loans (
    loan_id integer NOT NULL,
    member_id integer NOT NULL,
    work_id integer NOT NULL,
    copies smallint NOT NULL,
    taken date NOT NULL,
    returned date
);


ALTER TABLE public.loans OWNER TO lending_app;

--
-- Name: loans_loan_id_seq; Type: SEQUENCE; Schema: public; Owner: lending_app
--

CREATE SEQUENCE public.loans_loan_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE public.loans_loan_id_seq OWNER TO lending_app;

--
-- Name: loans_loan_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: lending_app
--

ALTER SEQUENCE public.loans_loan_id_seq OWNED BY public.loans.loan_id;


--
-- Name: members; Type: TABLE; Schema: public; Owner: lending_app
--

CREATE TABLE public.members (
    member_id integer NOT NULL,
    name text NOT NULL,
    email text NOT NULL,
    joined date NOT NULL
);


ALTER TABLE public.members OWNER TO lending_app;

--
-- Name: sessions; Type: TABLE; Schema: public; Owner: lending_app
--

CREATE UNLOGGED TABLE public.sessions (
    token character(32) NOT NULL,
    member_id integer NOT NULL,
    seen timestamp with time zone NOT NULL,
    data json NOT NULL
);


ALTER TABLE public.sessions OWNER TO lending_app;

--
-- Name: works; Type: TABLE; Schema: public; Owner: lending_app
--

CREATE TABLE public.works (
    work_id integer NOT NULL,
    composer text NOT NULL,
    title text NOT NULL,
    copies smallint NOT NULL
);


ALTER TABLE public.works OWNER TO lending_app;

--
-- Name: open_loans; Type: VIEW; Schema: reporting; Owner: lending_app
--

CREATE VIEW reporting.open_loans AS
 SELECT m.name,
    public.array_accum(w.title) AS titles,
    sum(l.copies) AS copies
   FROM ((public.loans l
     JOIN public.members m USING (member_id))
     JOIN public.works w USING (work_id))
  WHERE (l.returned IS NULL)
  GROUP BY m.name;


ALTER TABLE reporting.open_loans OWNER TO lending_app;

--
-- Name: works; Type: VIEW; Schema: reporting; Owner: lending_app
--

CREATE VIEW reporting.works AS
 SELECT w.work_id,
    w.composer,
    w.title,
    (w.copies - COALESCE(sum(l.copies) FILTER (WHERE (l.returned IS NULL)), (0)::bigint)) AS on_shelf
   FROM (public.works w
     LEFT JOIN public.loans l USING (work_id))
  GROUP BY w.work_id, w.composer, w.title, w.copies;


ALTER TABLE reporting.works OWNER TO lending_app;

--
-- Name: loans loan_id; Type: DEFAULT; Schema: public; Owner: lending_app
--

ALTER TABLE ONLY public.loans ALTER COLUMN loan_id SET DEFAULT nextval('public.loans_loan_id_seq'::regclass);


--
-- Data for Name: loans; Type: TABLE DATA; Schema: public; Owner: lending_app
--

COPY public.loans (loan_id, member_id, work_id, copies, taken, returned) FROM stdin;
4001	97	118	12	2018-02-11	2018-04-29
4002	49	107	9	2018-02-11	2018-07-14
4003	73	109	5	2018-02-12	2018-07-07
4004	25	117	6	2018-02-17	2018-03-19
4005	10	116	9	2018-02-25	2018-05-18
4006	28	104	4	2018-02-26	2018-07-01
4007	109	116	1	2018-03-01	2018-04-07
4008	97	103	2	2018-03-04	2018-06-21
4009	13	116	5	2018-03-07	2018-04-22
4010	34	114	10	2018-03-09	2018-04-13
4011	118	105	11	2018-03-19	2018-04-18
4012	67	119	3	2018-03-30	2018-07-09
4013	109	112	6	2018-04-10	2018-09-06
4014	55	113	3	2018-04-16	2018-07-15
4015	7	116	9	2018-04-22	2018-08-14
4016	106	113	7	2018-04-27	2018-08-28
4017	91	117	3	2018-05-03	2018-10-09
4018	7	107	12	2018-05-09	2018-08-17
4019	28	103	12	2018-05-19	2018-09-11
4020	79	117	11	2018-05-30	2018-10-25
4021	112	107	1	2018-06-07	2018-08-19
4022	49	100	2	2018-06-13	2018-09-23
4023	43	108	3	2018-06-16	2018-10-22
4024	85	117	12	2018-06-19	2018-10-31
4025	104	115	12	2018-06-29	2018-08-01
4026	43	119	9	2018-07-02	2018-11-16
4027	70	117	3	2018-07-07	2018-12-05
4028	55	112	3	2018-07-11	2018-12-01
4029	109	100	1	2018-07-12	2018-09-09
4030	1	107	5	2018-07-19	2018-11-28
4031	79	107	10	2018-07-21	2018-09-23
4032	46	114	8	2018-07-28	2019-01-02
4033	106	102	12	2018-08-06	2018-12-04
4034	94	100	9	2018-08-06	2018-12-16
4035	70	110	2	2018-08-13	2018-11-17
4036	100	113	11	2018-08-15	2018-12-07
4037	46	114	8	2018-08-21	2018-12-30
4038	109	103	6	2018-08-22	2018-10-19
4039	4	113	2	2018-08-28	2018-11-15
4040	100	103	10	2018-09-07	2018-10-14
4041	4	109	12	2018-09-14	2018-11-19
4042	22	114	3	2018-09-21	2019-01-29
4043	25	113	9	2018-09-23	2019-01-16
4044	85	115	10	2018-09-26	2019-01-22
4045	112	109	11	2018-10-07	2019-01-16
4046	85	101	11	2018-10-13	2018-12-01
4047	20	101	12	2018-10-16	2019-01-01
4048	37	112	11	2018-10-22	2019-01-11
4049	7	112	10	2018-11-02	2018-12-12
4050	109	117	11	2018-11-13	2019-02-07
4051	118	105	2	2018-11-22	2019-02-12
4052	62	102	9	2018-11-30	2019-01-19
4053	85	101	6	2018-11-30	2019-03-22
4054	100	112	1	2018-12-01	2019-03-20
4055	79	100	6	2018-12-05	2019-01-17
4056	115	101	8	2018-12-12	2019-01-15
4057	88	113	7	2018-12-14	2019-04-21
4058	104	114	10	2018-12-14	2019-02-26
4059	67	107	10	2018-12-14	2019-01-18
4060	85	118	10	2018-12-17	2019-05-15
4061	46	106	6	2018-12-24	2019-05-24
4062	104	102	8	2018-12-27	2019-04-13
4063	106	101	11	2019-01-04	2019-06-04
4064	20	109	4	2019-01-11	2019-04-20
4065	16	108	4	2019-01-16	2019-03-09
4066	106	114	9	2019-01-19	2019-06-26
4067	10	103	3	2019-01-30	2019-04-24
4068	10	110	10	2019-01-30	2019-03-27
4069	94	110	1	2019-02-03	2019-03-12
4070	104	103	9	2019-02-03	2019-03-30
4071	41	100	5	2019-02-10	2019-03-01
4072	73	109	5	2019-02-15	2019-04-11
4073	85	111	11	2019-02-22	2019-04-13
4074	52	116	10	2019-02-25	2019-07-24
4075	46	101	11	2019-03-02	2019-04-24
4076	1	111	4	2019-03-05	2019-03-19
4077	1	101	3	2019-03-12	2019-05-02
4078	112	106	1	2019-03-17	2019-07-25
4079	115	112	8	2019-03-19	2019-08-19
4080	115	105	10	2019-03-27	2019-08-02
4081	112	112	5	2019-04-06	2019-06-09
4082	79	111	1	2019-04-13	2019-08-25
4083	118	115	7	2019-04-19	2019-07-18
4084	37	109	6	2019-04-20	2019-05-26
4085	79	106	7	2019-04-25	2019-06-29
4086	16	107	10	2019-05-05	2019-09-09
4087	70	119	9	2019-05-08	2019-08-12
4088	109	106	1	2019-05-14	2019-06-13
4089	43	107	7	2019-05-15	2019-07-04
4090	37	119	3	2019-05-22	2019-09-17
4091	28	106	2	2019-05-27	2019-07-07
4092	16	115	11	2019-06-05	2019-08-24
4093	91	100	6	2019-06-07	2019-10-28
4094	16	104	5	2019-06-14	2019-09-06
4095	109	115	4	2019-06-24	2019-11-09
4096	52	106	9	2019-07-04	2019-10-03
4097	73	113	6	2019-07-09	2019-09-04
4098	13	101	3	2019-07-20	2019-09-24
4099	62	118	11	2019-07-27	2019-08-22
4100	28	108	10	2019-08-04	2019-12-29
4101	28	115	9	2019-08-06	2019-11-23
4102	1	102	11	2019-08-08	2020-01-05
4103	1	101	4	2019-08-12	2019-09-21
4104	94	118	11	2019-08-20	2019-10-14
4105	1	105	1	2019-08-24	2019-10-20
4106	70	107	5	2019-08-29	2019-12-02
4107	62	101	6	2019-08-31	2020-01-17
4108	10	116	4	2019-09-10	2019-11-09
4109	83	112	10	2019-09-14	2019-12-17
4110	4	110	7	2019-09-25	2019-10-15
4111	10	113	1	2019-10-01	2019-12-30
4112	118	106	9	2019-10-04	2020-01-14
4113	28	112	1	2019-10-06	2019-10-29
4114	115	117	6	2019-10-11	2020-01-06
4115	20	115	6	2019-10-15	2020-02-18
4116	62	105	6	2019-10-23	2020-02-23
4117	10	111	5	2019-11-03	2019-12-07
4118	31	109	12	2019-11-08	2019-12-14
4119	41	115	12	2019-11-17	2020-01-21
4120	16	107	11	2019-11-27	2020-03-29
4121	118	111	2	2019-11-27	2019-12-25
4122	31	102	11	2019-12-03	2020-01-08
4123	94	107	9	2019-12-12	2020-01-15
4124	76	116	4	2019-12-16	2020-01-21
4125	73	109	1	2019-12-24	2020-01-17
4126	31	103	2	2019-12-25	2020-04-05
4127	83	114	1	2020-01-03	2020-02-25
4128	1	101	6	2020-01-12	2020-04-17
4129	25	106	10	2020-01-16	2020-03-29
4130	106	111	5	2020-01-21	2020-03-17
4131	67	108	8	2020-01-24	2020-04-26
4132	112	112	3	2020-02-03	2020-04-03
4133	55	104	6	2020-02-06	2020-05-17
4134	43	114	1	2020-02-13	2020-04-29
4135	1	110	3	2020-02-23	\N
4136	94	107	6	2020-02-27	\N
4137	64	113	5	2020-03-07	\N
4138	4	113	5	2020-03-14	\N
4139	62	103	4	2020-03-14	2020-05-29
4140	22	119	10	2020-03-25	2020-06-15
4141	46	106	2	2020-03-28	2020-06-26
4142	46	104	10	2020-03-29	2020-06-30
4143	49	110	1	2020-04-01	\N
4144	67	111	8	2020-04-06	2020-07-25
4145	112	102	1	2020-04-08	\N
4146	16	119	9	2020-04-09	\N
4147	52	105	4	2020-04-17	\N
4148	34	115	5	2020-04-23	\N
4149	22	115	1	2020-04-28	2020-09-08
4150	64	106	1	2020-05-08	\N
4151	37	114	5	2020-05-11	2020-07-24
4152	115	116	7	2020-05-13	\N
4153	94	114	1	2020-05-23	\N
4154	100	104	11	2020-05-31	\N
4155	118	116	10	2020-06-03	\N
4156	43	116	7	2020-06-07	\N
4157	7	107	1	2020-06-07	\N
4158	4	111	10	2020-06-14	\N
4159	41	119	5	2020-06-23	\N
4160	76	114	1	2020-06-26	\N
\.


--
-- Name: loans_loan_id_seq; Type: SEQUENCE SET; Schema: public; Owner: lending_app
--

SELECT pg_catalog.setval('public.loans_loan_id_seq', 4163, true);


--
-- Data for Name: members; Type: TABLE DATA; Schema: public; Owner: lending_app
--

COPY public.members (member_id, name, email, joined) FROM stdin;
1	Paul Nannen	p.nannen@chor.example	2010-06-28
4	Wiebke Folkerts	w.folkerts@chor.example	2016-07-30
7	Jonas Ehlers	j.ehlers@kantorei.example	2009-06-12
10	Theda Wübbena	t.wuebbena@chor.example	2017-10-11
13	Zoë Ubben	z.ubben@chor.example	2016-02-18
16	Frieda Saathoff	f.saathoff@kantorei.example	2009-12-20
20	Benno Ahrens	b.ahrens@chor.example	2013-11-03
22	Clara Meinen	c.meinen@chor.example	2010-10-17
25	Nils Ahrens	n.ahrens@kantorei.example	2011-12-08
28	Håkon Dirksen	h.dirksen@chor.example	2014-01-20
31	Jonas Lüders	j.lueders@chor.example	2015-10-25
34	Ruth Folkerts	r.folkerts@kantorei.example	2017-08-18
37	Sönke Lüders	s.lueders@chor.example	2012-08-28
41	Uwe Saathoff	u.saathoff@chor.example	2013-02-04
43	Katja Rolfs	k.rolfs@kantorei.example	2012-08-28
46	Jörg Gerdes	j.gerdes@chor.example	2013-02-23
49	Olga Peters	o.peters@chor.example	2015-06-17
52	Lorenz Harms	l.harms@kantorei.example	2014-09-05
55	Dorte Dirksen	d.dirksen@chor.example	2017-12-13
58	Emil Saathoff	e.saathoff@chor.example	2017-06-14
62	Nils Folkerts	n.folkerts@kantorei.example	2011-03-02
64	Jörg Küster	j.kuester@chor.example	2016-07-26
67	Paul Lüders	p.lueders@chor.example	2010-02-08
70	Ruth Lüders	r.lueders@kantorei.example	2012-10-16
73	Ruth Onken	r.onken@chor.example	2010-08-31
76	Maren Harms	m.harms@chor.example	2014-09-02
79	Katja Dirksen	k.dirksen@kantorei.example	2010-12-24
83	Jörg Ehlers	j.ehlers@chor.example	2013-01-28
85	Zoë Harms	z.harms@chor.example	2010-06-05
88	Gesa Ubben	g.ubben@kantorei.example	2009-03-31
91	Wiebke Ahrens	w.ahrens@chor.example	2015-10-29
94	Clara Gerdes	c.gerdes@chor.example	2013-03-30
97	Katja Ahrens	k.ahrens@kantorei.example	2015-09-21
100	Emil Meinen	e.meinen@chor.example	2010-01-17
104	Uwe Harms	u.harms@chor.example	2016-08-11
106	Olga Claasen	o.claasen@kantorei.example	2014-12-28
109	Lorenz Nannen	l.nannen@chor.example	2014-04-20
112	Nils Folkerts	n.folkerts@chor.example	2013-10-18
115	Benno Behrens	b.behrens@kantorei.example	2011-11-01
118	Ilse Wübbena	i.wuebbena@chor.example	2009-12-28
\.


--
-- Data for Name: sessions; Type: TABLE DATA; Schema: public; Owner: lending_app
--

COPY public.sessions (token, member_id, seen, data) FROM stdin;
cfcd208495d565ef66e7dff9f98764da	1	2022-11-24 10:35:47.1075+01	{"lang": "nds"}
c4ca4238a0b923820dcc509a6f75849b	70	2022-11-21 17:17:40.4246+01	{"lang": "en"}
c81e728d9d4c2f636f067f89cc14862c	7	2022-11-24 09:09:38.4592+01	{"lang": "en"}
eccbc87e4b5ce2fe28308fd9f2a7baf3	76	2022-11-27 11:25:59.1678+01	{"lang": "de"}
a87ff679a2f3e71d9181a67b7542122c	73	2022-11-20 12:08:33.3652+01	{"lang": "en"}
e4da3b7fbbce2345d7772b0674a318d5	106	2022-11-22 17:41:18.5104+01	{"lang": "nds"}
1679091c5a880faf6fb5e6087eb1b2dc	67	2022-11-26 20:26:48.5279+01	{"lang": "de"}
8f14e45fceea167a5a36dedd4bea2543	41	2022-11-27 08:14:26.6047+01	{"lang": "nds"}
c9f0f895fb98ab9159f51fd0297e236d	67	2022-11-25 10:02:57.5469+01	{"lang": "nds"}
45c48cce2e2d7fbdea1afc51c7c6ad26	97	2022-11-21 15:04:37.8776+01	{"lang": "en"}
d3d9446802a44259755d38e6d163e820	1	2022-11-27 09:21:35.5257+01	{"lang": "nds"}
6512bd43d9caa6e02c990b0a82652dca	115	2022-11-26 13:01:15.9034+01	{"lang": "nds"}
c20ad4d76fe97759aa27a0c99bff6710	118	2022-11-24 18:25:49.6631+01	{"lang": "nds"}
c51ce410c124a10e0db5e4b97fc2af39	112	2022-11-20 17:27:18.5339+01	{"lang": "en"}
aab3238922bcc25a6f606eb525ffdc56	83	2022-11-20 09:34:55.8324+01	{"lang": "nds"}
9bf31c7ff062936a96d3c8bd1f8f2ff3	79	2022-11-26 16:47:46.5003+01	{"lang": "nds"}
c74d97b01eae257e44aa9d5bade97baf	104	2022-11-27 11:17:03.2143+01	{"lang": "nds"}
70efdf2ec9b086079795c442636b55fb	109	2022-11-23 11:06:48.7819+01	{"lang": "en"}
6f4922f45568161a8cdf4ad2299f6d23	109	2022-11-23 18:53:24.2687+01	{"lang": "nds"}
1f0e3dad99908345f7439f8ffabdffc4	34	2022-11-21 10:59:22.7897+01	{"lang": "en"}
98f13708210194c475687be6106a3b84	58	2022-11-27 14:45:03.4887+01	{"lang": "nds"}
3c59dc048e8850243be8079a5c74d079	88	2022-11-21 12:53:03.3568+01	{"lang": "en"}
b6d767d2f8ed5d21a44b0e5886680cb9	94	2022-11-23 09:33:04.7109+01	{"lang": "nds"}
37693cfc748049e45d87b8c7d8b9aacd	7	2022-11-26 18:52:38.4078+01	{"lang": "en"}
1ff1de774005f8da13f42943881c655f	104	2022-11-24 13:57:43.3275+01	{"lang": "en"}
\.


--
-- Data for Name: works; Type: TABLE DATA; Schema: public; Owner: lending_app
--

COPY public.works (work_id, composer, title, copies) FROM stdin;
100	C. Monteverdi	Jesu, meine Freude	40
101	J. S. Bach	Magnificat	20
102	B. Britten	Vesper	80
103	J. Brahms	Denn er hat seinen Engeln	25
104	Trad.	Geistliches Lied	20
105	A. Dvořák	Totentanz	20
106	A. Pärt	Da pacem Domine	80
107	H. Distler	A Ceremony of Carols	25
108	H. Distler	Requiem	25
109	J. S. Bach	Messe in D	25
110	G. Fauré	Der Mond ist aufgegangen	25
111	F. Mendelssohn Bartholdy	Singet dem Herrn	40
112	C. Monteverdi	Warum ist das Licht gegeben	80
113	J. Brahms	Cantique de Jean Racine	20
114	Trad.	Membra Jesu nostri	40
115	G. Fauré	Hör mein Bitten	25
116	Trad.	Es ist ein Ros	80
117	Trad.	Jubilate Deo	20
118	B. Britten	Ave verum	40
119	B. Britten	Nachtwache II	60
\.


--
-- Name: loans loans_pkey; Type: CONSTRAINT; Schema: public; Owner: lending_app
--

ALTER TABLE ONLY public.loans
    ADD CONSTRAINT loans_pkey PRIMARY KEY (loan_id);


--
-- Name: members members_pkey; Type: CONSTRAINT; Schema: public; Owner: lending_app
--

ALTER TABLE ONLY public.members
    ADD CONSTRAINT members_pkey PRIMARY KEY (member_id);


--
-- Name: sessions sessions_pkey; Type: CONSTRAINT; Schema: public; Owner: lending_app
--

ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (token);


--
-- Name: works works_pkey; Type: CONSTRAINT; Schema: public; Owner: lending_app
--

ALTER TABLE ONLY public.works
    ADD CONSTRAINT works_pkey PRIMARY KEY (work_id);


--
-- Name: loans loans_member_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: lending_app
--

ALTER TABLE ONLY public.loans
    ADD CONSTRAINT loans_member_id_fkey FOREIGN KEY (member_id) REFERENCES public.members(member_id);


--
-- Name: SCHEMA reporting; Type: ACL; Schema: -; Owner: lending_app
--

GRANT USAGE ON SCHEMA reporting TO lending_report;


--
-- Name: TABLE open_loans; Type: ACL; Schema: reporting; Owner: lending_app
--

GRANT SELECT ON TABLE reporting.open_loans TO lending_report;


--
-- Name: TABLE works; Type: ACL; Schema: reporting; Owner: lending_app
--

GRANT SELECT ON TABLE reporting.works TO lending_report;


--
-- PostgreSQL database dump complete
--

