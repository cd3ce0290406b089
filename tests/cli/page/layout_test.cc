// SPDX-License-Identifier: Apache-2.0
#include "cli/layout/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

namespace fusebox::cli::layout {
namespace {

constexpr double kEpsilon = 1e-6;

// No two nodes overlap, edges lead down, and all is within the picture.
void ExpectSound(const Graph& graph, const Layout& layout) {
  ASSERT_EQ(layout.nodes.size(), graph.nodes.size());
  ASSERT_EQ(layout.routes.size(), graph.edges.size());
  std::vector<size_t> order(graph.nodes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](size_t i) { return std::pair(layout.nodes[i].y, layout.nodes[i].x); });
  for (size_t k = 0; k < order.size(); ++k) {
    const Point& at = layout.nodes[order[k]];
    const Graph::Node& node = graph.nodes[order[k]];
    EXPECT_GE(at.x - node.width / 2, 0);
    EXPECT_LE(at.x + node.width / 2, layout.width);
    EXPECT_GE(at.y - node.height / 2, 0);
    EXPECT_LE(at.y + node.height / 2, layout.height);
    if (k == 0 || layout.nodes[order[k - 1]].y != at.y) continue;
    const double left = layout.nodes[order[k - 1]].x + graph.nodes[order[k - 1]].width / 2;
    EXPECT_LE(left, at.x - node.width / 2 + kEpsilon);
  }
  for (size_t e = 0; e < graph.edges.size(); ++e) {
    EXPECT_LT(layout.nodes[static_cast<size_t>(graph.edges[e].from)].y,
              layout.nodes[static_cast<size_t>(graph.edges[e].to)].y);
    for (size_t i = 1; i < layout.routes[e].size(); ++i)
      EXPECT_LE(layout.routes[e][i - 1].y, layout.routes[e][i].y);
  }
}

Graph Nodes(int count) {
  Graph graph;
  for (int i = 0; i < count; ++i) graph.nodes.push_back({60.0 + i * 37 % 90, 40});
  return graph;
}

// Blocks of three, each with a branch, joined by an addition with what enters the block.
Graph Residual(int count) {
  Graph graph = Nodes(count);
  for (int i = 1; i < count; ++i) {
    graph.edges.push_back({i - 1, i});
    if (i % 5 == 0) graph.edges.push_back({i - 5, i});
    if (i % 7 == 0) graph.edges.push_back({i - 3, i});
  }
  return graph;
}

double SecondsOf(const Graph& graph, Layout* layout) {
  const auto start = std::chrono::steady_clock::now();
  *layout = Lay(graph);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(PageLayout, AnEmptyGraphHasASize) {
  const Layout layout = Lay({});
  EXPECT_GT(layout.width, 0);
  EXPECT_GT(layout.height, 0);
  EXPECT_TRUE(layout.nodes.empty());
}

TEST(PageLayout, NodesWithoutEdgesAreSideBySide) {
  const Graph graph = Nodes(4);
  const Layout layout = Lay(graph);
  ExpectSound(graph, layout);
  for (const Point& at : layout.nodes) EXPECT_EQ(at.y, layout.nodes[0].y);
}

TEST(PageLayout, AChainIsStraight) {
  Graph graph = Nodes(30);
  for (int i = 1; i < 30; ++i) graph.edges.push_back({i - 1, i});
  const Layout layout = Lay(graph);
  ExpectSound(graph, layout);
  for (const Point& at : layout.nodes) EXPECT_NEAR(at.x, layout.nodes[0].x, kEpsilon);
}

// The chain 4, 5, 6 reads the inputs 0 to 3, one or two each.
TEST(PageLayout, AChainIsStraightBesideWhatItReads) {
  Graph graph;
  for (int i = 0; i < 8; ++i) graph.nodes.push_back({80, 40});
  graph.edges = {{0, 4}, {1, 4}, {4, 5}, {2, 5}, {5, 6}, {3, 6}, {5, 7}};
  const Layout layout = Lay(graph);
  ExpectSound(graph, layout);
  EXPECT_NEAR(layout.nodes[4].x, layout.nodes[5].x, kEpsilon);
  EXPECT_NE(layout.nodes[2].x, layout.nodes[4].x);
}

// The edge over three ranks has a column of its own, without a bend in it.
TEST(PageLayout, ALongEdgeGoesAroundWhatIsBetween) {
  Graph graph = Nodes(5);
  for (int i = 1; i < 5; ++i) graph.edges.push_back({i - 1, i});
  graph.edges.push_back({0, 4});
  const Layout layout = Lay(graph);
  ExpectSound(graph, layout);
  const auto& route = layout.routes.back();
  ASSERT_EQ(route.size(), 8u);
  for (size_t i = 2; i < 7; ++i) EXPECT_NEAR(route[i].x, route[1].x, kEpsilon);
  for (size_t i = 1; i < 4; ++i)
    EXPECT_GE(std::abs(route[1].x - layout.nodes[i].x), graph.nodes[i].width / 2);
}

TEST(PageLayout, CrossingsThatNeedNotBeAreRemoved) {
  Graph graph = Nodes(8);  // 0..3 above, 4..7 below, in the opposite order
  for (int i = 0; i < 4; ++i) graph.edges.push_back({i, 7 - i});
  Layered layered = Split(graph, RanksOf(graph));
  EXPECT_EQ(Crossings(layered), 6u);
  Order(layered);
  EXPECT_EQ(Crossings(layered), 0u);
}

TEST(PageLayout, WhatOneNodeReadsIsJustAboveIt) {
  Graph graph = Nodes(6);
  for (int i = 1; i < 4; ++i) graph.edges.push_back({i - 1, i});
  graph.edges.push_back({4, 5});
  graph.edges.push_back({3, 5});
  EXPECT_EQ(RanksOf(graph), (std::vector<int>{0, 1, 2, 3, 3, 4}));
}

TEST(PageLayout, RandomGraphsAreSound) {
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    Graph graph = Nodes(3 + round * 4);
    const int count = static_cast<int>(graph.nodes.size());
    for (int e = 0; e < count * 2; ++e) {
      const int a = static_cast<int>(random() % static_cast<unsigned>(count));
      const int b = static_cast<int>(random() % static_cast<unsigned>(count));
      if (a != b) graph.edges.push_back({std::min(a, b), std::max(a, b)});
    }
    ExpectSound(graph, Lay(graph));
  }
}

// 3 s are demanded of 10,000 nodes; a quarter of it leaves room for busy machines.
TEST(PageLayout, TenThousandNodesWithBranches) {
  const Graph graph = Residual(10'000);
  Layout layout;
  const double seconds = SecondsOf(graph, &layout);
  ExpectSound(graph, layout);
  RecordProperty("seconds", std::to_string(seconds));
  EXPECT_LT(seconds, 3);
}

TEST(PageLayout, ANodeWithFiveThousandReaders) {
  Graph graph = Nodes(5'002);
  for (int i = 1; i <= 5'000; ++i) {
    graph.edges.push_back({0, i});
    graph.edges.push_back({i, 5'001});
  }
  Layout layout;
  EXPECT_LT(SecondsOf(graph, &layout), 3);
  ExpectSound(graph, layout);
}

// Every node reads the first one: edges that are too long to be routed are straight.
TEST(PageLayout, ALongChainThatReadsItsFirstNode) {
  Graph graph = Nodes(5'000);
  for (int i = 1; i < 5'000; ++i) {
    graph.edges.push_back({i - 1, i});
    if (i > 1) graph.edges.push_back({0, i});
  }
  Layout layout;
  EXPECT_LT(SecondsOf(graph, &layout), 3);
  ExpectSound(graph, layout);
}

}  // namespace
}  // namespace fusebox::cli::layout
