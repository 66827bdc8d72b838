// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Board is the part of a Grafana board that says what it shows.
type Board struct {
	UID        string  `json:"uid"`
	Title      string  `json:"title"`
	Panels     []Panel `json:"panels"`
	Templating struct {
		List []Variable `json:"list"`
	} `json:"templating"`
}

// Panel is one of a board. Those of type row are headings.
type Panel struct {
	ID          int        `json:"id"`
	Type        string     `json:"type"`
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Datasource  Datasource `json:"datasource"`
	GridPos     Position   `json:"gridPos"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Targets []Target `json:"targets"`
}

// Position is where a panel is, in a grid that is 24 wide.
type Position struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w"`
	H int `json:"h"`
}

// Target is a query of a panel.
type Target struct {
	RefID        string     `json:"refId"`
	Datasource   Datasource `json:"datasource"`
	Expr         string     `json:"expr"`
	LegendFormat string     `json:"legendFormat"`
	Instant      bool       `json:"instant"`
	Range        bool       `json:"range"`
}

// Datasource is where a query is asked.
type Datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// Variable is what a user chooses at the top of a board.
type Variable struct {
	Name       string     `json:"name"`
	Type       string     `json:"type"`
	Datasource Datasource `json:"datasource"`
	Definition string     `json:"definition"`
	AllValue   string     `json:"allValue"`
}

// ReadBoard reads a board from a file.
func ReadBoard(path string) (Board, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Board{}, err
	}
	board := Board{}
	if err := json.Unmarshal(data, &board); err != nil {
		return Board{}, fmt.Errorf("decode %s: %w", path, err)
	}
	return board, nil
}

// Query is one that a panel asks.
type Query struct {
	Panel, Expr string
	// Instant is true for a query of one moment, false for one of a range.
	Instant bool
}

// Queries returns the queries of all panels as Grafana asks them when nothing is
// chosen, with ranges of a length, such as 1m, for those that follow what is shown.
func (b Board) Queries(length string) []Query {
	names := []string{"$__rate_interval", length, "$__range", length}
	for _, variable := range b.Templating.List {
		names = append(names, "$"+variable.Name, variable.AllValue)
	}
	chosen := strings.NewReplacer(names...)
	var queries []Query
	for _, panel := range b.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, Query{Panel: panel.Title, Expr: chosen.Replace(target.Expr), Instant: target.Instant})
		}
	}
	return queries
}
