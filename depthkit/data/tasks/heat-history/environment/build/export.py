"""The readings of a cold week, as the old recorder exported them."""

import math

START = 1705276800  # 2024-01-15
STEP = 900
STATIONS = ("school", "hospital", "lido", "townhall")
READINGS = 6 * 86400 // STEP

print("# export of heatlog 3.2, station data, week of the inspection, one reading a quarter of an hour")
for name, kind, about in (
    ("heat_supply_celsius", "gauge", "water into the station"),
    ("heat_return_celsius", "gauge", "water back from the station"),
    ("heat_energy_kwh", "counter", "reading of the heat meter"),
):
    print(f"# HELP {name} {about}")
    print(f"# TYPE {name} {kind}")
    for number, station in enumerate(STATIONS):
        total = 120000.0 + 4000 * number
        for n in range(READINGS):
            when = START + n * STEP
            day = 2 * math.pi * (when % 86400) / 86400
            outside = 4 * math.sin(2 * math.pi * n / READINGS) + 3 * math.sin(day)
            supply = 84 - 1.4 * outside + number + (n * 7919 % 13) / 10
            back = 51 - 0.5 * outside + 2 * number + (n * 104729 % 11) / 10
            # the feeler in the return pipe of the lido hung loose for a day and a half
            if station == "lido" and 2 * 96 + 30 <= n < 4 * 96 - 18:
                back = 11 + (n * 31 % 17) / 10
            total += (supply - back) * (2 + number) / 8
            value = {"heat_supply_celsius": supply, "heat_return_celsius": back}.get(name, total)
            if (n * 31 + number) % 97 == 0:
                continue
            print(f'{name}{{station="{station}"}} {value:.2f} {when * 1000}')
