// SPDX-License-Identifier: Apache-2.0
// Layered layout of a directed graph without cycles, top to bottom (Sugiyama's method). Plain numbers in and
// out; no drawing.
//
// RanksOf -> Split -> Order -> Columns -> Lay. A rank is a row. An edge over several ranks becomes a chain of
// bends, one per rank between; the edges of one node share them.
#pragma once

#include <cstddef>
#include <vector>

namespace fusebox::cli::layout {

struct Graph {
  struct Node {
    double width, height;
  };
  struct Edge {
    int from, to;  // from < to
  };
  std::vector<Node> nodes;
  std::vector<Edge> edges;
};

// The rank of each node: below all that it depends on, and near what reads it.
std::vector<int> RanksOf(const Graph&);

// Nodes and bends in ranks, joined between neighboring ranks only.
struct Layered {
  struct Item {
    int node = -1;  // -1: a bend
    int rank = 0;
    double width = 0;
    bool bend() const { return node < 0; }
  };
  std::vector<Item> items;                     // first the nodes, by number
  std::vector<std::vector<int>> ranks;         // items, left to right
  std::vector<std::vector<int>> above, below;  // by item: neighbors in the rank above and below
  std::vector<std::vector<int>> bends;         // by edge; empty also for an edge that is too long to route
};
// The number of bends is limited: edges over more ranks than that permits are straight lines.
Layered Split(const Graph&, const std::vector<int>& ranks);

// Sorts each rank so that few edges cross.
void Order(Layered&);
size_t Crossings(const Layered&);

// The x of the center of each item (Brandes and Köpf): long edges are straight, and items do not overlap.
std::vector<double> Columns(const Layered&);

struct Point {
  double x, y;
};
struct Layout {
  std::vector<Point> nodes;                // centers
  std::vector<std::vector<Point>> routes;  // by edge: from the bottom of a node to the top of another
  double width = 0;                        // of all, from (0, 0)
  double height = 0;                       // of all, from (0, 0)
};
Layout Lay(const Graph&);

}  // namespace fusebox::cli::layout
