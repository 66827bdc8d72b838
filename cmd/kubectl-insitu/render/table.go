// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"strings"
)

// gap separates columns.
const gap = 2

// table aligns cells. It is not a text/tabwriter since that counts the escape sequences
// of colors as columns, and cannot leave out a column where the terminal is narrow.
type table struct {
	head []string
	// expendable are the columns that are left out in a narrow terminal, the first one
	// first.
	expendable []string
	rows       []row
}

// row has cells, or is a line of its own that no column is aligned with.
type row struct {
	cells []line
	free  line
}

// add adds a row of cells; what is missing on the right is empty.
func (t *table) add(cells ...line) {
	t.rows = append(t.rows, row{cells: cells})
}

// addFree adds a line as it is.
func (t *table) addFree(l line) {
	t.rows = append(t.rows, row{free: l})
}

// lines returns the table as it fits into a terminal.
func (t *table) lines(width int) []line {
	widths := t.widths()
	for _, name := range t.expendable {
		if width <= 0 || total(widths) <= width {
			break
		}
		widths[slices.Index(t.head, name)] = 0
	}
	var lines []line
	if len(t.head) > 0 {
		lines = append(lines, t.header(widths).cut(width))
	}
	for _, row := range t.rows {
		l := row.free
		if row.cells != nil {
			l = join(row.cells, widths)
		}
		lines = append(lines, l.cut(width))
	}
	return lines
}

// widths returns how wide the columns are: 0 for those without anything in them.
func (t *table) widths() []int {
	columns := len(t.head)
	for _, row := range t.rows {
		columns = max(columns, len(row.cells))
	}
	widths := make([]int, columns)
	for _, row := range t.rows {
		for i, cell := range row.cells {
			widths[i] = max(widths[i], cell.width())
		}
	}
	for i, name := range t.head {
		if widths[i] > 0 {
			widths[i] = max(widths[i], len(name))
		}
	}
	return widths
}

func (t *table) header(widths []int) line {
	cells := make([]line, 0, len(t.head))
	for _, name := range t.head {
		cells = append(cells, styled(faint, name))
	}
	return join(cells, widths)
}

// join puts cells into one line, without the columns that have no width.
func join(cells []line, widths []int) line {
	var joined line
	margin := 0
	for i, cell := range cells {
		if widths[i] == 0 {
			continue
		}
		if cell.width() > 0 {
			joined = append(append(joined, span{plain, strings.Repeat(" ", margin)}), cell...)
			margin = 0
		}
		margin += widths[i] - cell.width() + gap
	}
	return joined
}

func total(widths []int) int {
	sum := -gap
	for _, width := range widths {
		if width > 0 {
			sum += width + gap
		}
	}
	return sum
}

// node is an entry of a tree, with columns or, if it has only a name, without.
type node struct {
	name     line
	cells    []line
	children []node
}

// addTree adds a node and all below it.
func (t *table) addTree(n node) {
	t.addNode(n, "", "")
}

// addNode adds a node after what leads to it, and its children after what leads to them.
func (t *table) addNode(n node, own, below string) {
	name := append(styled(faint, own), n.name...)
	if n.cells == nil {
		t.addFree(name)
	} else {
		t.add(append([]line{name}, n.cells...)...)
	}
	for i, child := range n.children {
		if i == len(n.children)-1 {
			t.addNode(child, below+"└─ ", below+"   ")
		} else {
			t.addNode(child, below+"├─ ", below+"│  ")
		}
	}
}
