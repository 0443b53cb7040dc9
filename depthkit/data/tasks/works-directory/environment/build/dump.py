"""What slapcat of the old server printed: the directory of the works department."""

import base64
import hashlib

BASE = "dc=works,dc=example"
FIRST = "Ada Bela Cleo Dora Egon Fred Gita Hugo Ines Jona Kurt Lena Milo Nora Otto Pia Rosa Sven Tara Udo Vera Willi".split()
LAST = "Acker Brandt Conrad Dietz Ebert Falk Gerber Hahn Imhof Jung Keller Lorenz Maurer Nagel Ott Pohl Reuter Sauer Thoma Ulrich Vogt Weiss Zeller".split()
TITLES = ["fitter", "driver", "gardener", "clerk", "surveyor", "electrician", "mason", "foreman"]
DEPOTS = ["North yard", "Harbour", "Waterworks", "Town hall", "Nursery"]
count = 0


def ssha(password: str, salt: bytes) -> str:
    digest = hashlib.sha1(password.encode() + salt).digest()
    return "{SSHA}" + base64.b64encode(digest + salt).decode()


def entry(dn: str, lines: list[str], structural: str) -> None:
    global count
    count += 1
    uuid = hashlib.md5(dn.encode()).hexdigest()
    uuid = f"{uuid[:8]}-{uuid[8:12]}-1038-8{uuid[13:16]}-{uuid[16:28]}"
    stamp = f"2021{1 + count % 9:02d}{1 + count % 27:02d}{count % 24:02d}{count % 60:02d}{count * 7 % 60:02d}"
    lines = [f"dn: {dn}", *lines, f"structuralObjectClass: {structural}", f"entryUUID: {uuid}"]
    lines += [f"creatorsName: cn=admin,{BASE}", f"createTimestamp: {stamp}Z"]
    lines += [f"entryCSN: {stamp}.{count % 1000000:06d}Z#000000#000#000000"]
    lines += [f"modifiersName: cn=admin,{BASE}", f"modifyTimestamp: {stamp}Z"]
    for line in lines:
        text = line
        while len(text) > 78:
            print(text[:78])
            text = " " + text[78:]
        print(text)
    print()


def secret(password: str, salt: bytes) -> str:
    return "userPassword:: " + base64.b64encode(ssha(password, salt).encode()).decode()


people = []
for n in range(2600):
    first, last = FIRST[n * 5 % len(FIRST)], LAST[n * 11 % len(LAST)]
    people.append((f"{first[0]}{last}{n:04d}".lower(), first, last, n))
groups = {
    "personnel": people[3::700],
    "dispatch": people[5::150],
    "drivers": people[1::8],
    "wiki": people[::3],
}
member_of = {}
for name, members in groups.items():
    for uid, *_ in members:
        member_of.setdefault(uid, []).append(f"cn={name},ou=groups,{BASE}")

entry(BASE, ["objectClass: top", "objectClass: dcObject", "objectClass: organization", "o: Works department", "dc: works"], "organization")
for ou in ("people", "groups", "services", "policies"):
    entry(f"ou={ou},{BASE}", ["objectClass: organizationalUnit", f"ou: {ou}"], "organizationalUnit")
entry(
    f"cn=standard,ou=policies,{BASE}",
    ["objectClass: device", "objectClass: pwdPolicy", "cn: standard", "pwdAttribute: userPassword"]
    + ["pwdMaxAge: 0", "pwdMinLength: 8", "pwdCheckQuality: 1", "pwdLockout: FALSE", "pwdAllowUserChange: TRUE"],
    "device",
)
for cn, password, salt in (("replica", "Sluice-Gate-1177", b"rE9p"), ("web", "Culvert-Key-8316", b"wE2b")):
    entry(
        f"cn={cn},ou=services,{BASE}",
        ["objectClass: organizationalRole", "objectClass: simpleSecurityObject", f"cn: {cn}", secret(password, salt)],
        "organizationalRole",
    )
for uid, first, last, n in people:
    badge = f"W{10000 + n * 13}"
    lines = ["objectClass: inetOrgPerson", "objectClass: posixAccount", "objectClass: worksPerson"]
    lines += [f"uid: {uid}", f"cn: {first} {last}", f"givenName: {first}", f"sn: {last}"]
    lines += [f"mail: {uid}@works.example", f"title: {TITLES[n % 8]}", f"departmentNumber: {100 + n % 40}"]
    lines += [f"uidNumber: {20000 + n}", "gidNumber: 2000", f"homeDirectory: /home/{uid}"]
    lines += [f"worksBadge: {badge}", f"worksDepot: {DEPOTS[n % 5]}", f"telephoneNumber: +49 555 {1000 + n}"]
    lines += [f"homePostalAddress: Lane {n % 97}$5{n:04d} Town", secret(f"Badge-{badge}", uid[:4].encode())]
    if n % 20:
        lines.append(f"manager: uid={people[n - n % 20][0]},ou=people,{BASE}")
    lines += [f"memberOf: {group}" for group in member_of.get(uid, [])]
    entry(f"uid={uid},ou=people,{BASE}", lines, "inetOrgPerson")
for name, members in groups.items():
    lines = ["objectClass: groupOfNames", f"cn: {name}"]
    entry(f"cn={name},ou=groups,{BASE}", lines + [f"member: uid={uid},ou=people,{BASE}" for uid, *_ in members], "groupOfNames")
