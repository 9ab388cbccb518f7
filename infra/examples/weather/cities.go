package main

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

//go:embed cities.csv
var citiesCSV []byte

// weather is one row of the table.
type weather struct {
	city    string
	celsius int
	sky     string
	wind    int
}

func (w weather) String() string {
	return fmt.Sprintf("%s: %d °C, %s, wind %d km/h", w.city, w.celsius, w.sky, w.wind)
}

// cities is the table by normalised name and alias.
type cities map[string]weather

// mustReadCities panics on a bad table, which is a mistake in the program: the table is compiled
// in.
func mustReadCities(table []byte) cities {
	rows, err := csv.NewReader(bytes.NewReader(table)).ReadAll()
	if err != nil {
		panic("read cities: " + err.Error())
	}
	known := cities{}
	for _, row := range rows[1:] {
		celsius, err := strconv.Atoi(row[2])
		if err != nil {
			panic("read cities: " + err.Error())
		}
		wind, err := strconv.Atoi(row[4])
		if err != nil {
			panic("read cities: " + err.Error())
		}
		w := weather{city: row[0], celsius: celsius, sky: row[3], wind: wind}
		for _, name := range append(strings.Split(row[1], "|"), row[0]) {
			known[strings.Join(words(name), " ")] = w
		}
	}
	delete(known, "") // of cities without an alias
	return known
}

// find looks a city up by its name or an alias.
func (c cities) find(name string) (weather, bool) {
	w, ok := c[strings.Join(words(name), " ")]
	return w, ok
}

// longestName is how many words a name in the table may have.
const longestName = 3

// lastMention returns the name of the last city that a text mentions. A longer name wins over a
// shorter one within it.
func (c cities) lastMention(text string) (city string, ok bool) {
	said := words(text)
	for i := 0; i < len(said); i++ {
		for n := min(longestName, len(said)-i); n > 0; n-- {
			if w, known := c[strings.Join(said[i:i+n], " ")]; known {
				city, ok = w.city, true
				i += n - 1
				break
			}
		}
	}
	return city, ok
}

// plain takes the accents off the letters that the names of these cities have.
var plain = strings.NewReplacer("á", "a", "ã", "a", "é", "e", "è", "e", "ê", "e", "í", "i", "ó", "o", "ø", "o", "ö", "oe", "ú", "u", "ü", "ue", "'s", "", "’s", "")

// words returns the words of a text in lower case, without accents and punctuation.
func words(text string) []string {
	return strings.FieldsFunc(plain.Replace(strings.ToLower(text)), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
