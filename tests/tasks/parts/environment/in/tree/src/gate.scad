cylinder(h = 4, r = 2);
