package main

import "testing"

func TestCityOf(t *testing.T) {
	t.Parallel()
	for question, want := range map[string]string{
		"what's the weather in sf?":                      "San Francisco",
		"NYC":                                            "New York",
		"What's New York City's weather?":                "New York",
		"not sf, I meant tokyo":                          "Tokyo",
		"Is it warmer in São Paulo or in Zürich?":        "Zurich",
		"weather in La Paz":                              "La Paz",
		"weather in L.A.":                                "Los Angeles",
		"weather\nin\nRio de Janeiro, please":            "Rio de Janeiro",
		"What is the weather like in Gotham City today?": "Gotham City",
		"How is it in Atlantis, my friend?":              "Atlantis",
		"in Timbuktu":                                    "Timbuktu",
		"Timbuktu?":                                      "Timbuktu",
		"  ":                                             "",
		"a parisian in the romeo show":                   "the romeo show",
	} {
		if got := cityOf(question); got != want {
			t.Errorf("cityOf(%q): got %q, want %q", question, got, want)
		}
	}
}

func TestEveryCityIsFoundByItsNames(t *testing.T) {
	t.Parallel()
	if got := len(known); got < 60 {
		t.Errorf("got %d names, want at least 60", got)
	}
	for name, w := range known {
		if got, ok := known.lastMention("in " + name + " now"); !ok || got != w.city {
			t.Errorf("%q: got %q, want %q", name, got, w.city)
		}
		if got, ok := known.find(w.city); !ok || got != w {
			t.Errorf("%q: got %v, want %v", w.city, got, w)
		}
	}
}

func TestALongerNameWinsOverOneWithinIt(t *testing.T) {
	t.Parallel()
	table := mustReadCities([]byte("city,aliases,celsius,sky,wind_kmh\nParis,,1,sunny,1\nParis Beach,,1,sunny,1\nNew Paris,,1,sunny,1\n"))
	for text, want := range map[string]string{"to New Paris": "New Paris", "at Paris Beach": "Paris Beach", "New Paris, then Paris": "Paris"} {
		if got, ok := table.lastMention(text); !ok || got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
