#include "train/run/layout.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"

namespace muster::train {

std::optional<ShardRange> ColumnLayout::RunOf(int rank) const {
  const auto found = std::ranges::find(computers, rank);
  if (found == computers.end()) return std::nullopt;
  return runs[static_cast<std::size_t>(found - computers.begin())];
}

int ColumnLayout::ComputerOf(int shard) const {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].first <= shard && shard < runs[i].last) return computers[i];
  }
  MUSTER_CHECK(false, "every shard is computed by somebody");
  return 0;
}

namespace {

int Along(const std::vector<int>& ring, int rank, int steps) {
  const auto size = static_cast<int>(ring.size());
  const auto place = static_cast<int>(std::ranges::find(ring, rank) - ring.begin());
  return ring[static_cast<std::size_t>((place + steps + size) % size)];
}

// Memory is shared by those who offer some and are on one host.
std::vector<int> HostsOf(const View& view) {
  std::vector<int> out;
  for (const auto& member : view.members) {
    int first = 0;
    while (first < static_cast<int>(out.size())) {
      const auto& other = view.members[static_cast<std::size_t>(first)];
      if (!member.segment.empty() && !other.segment.empty() && other.host == member.host) break;
      ++first;
    }
    out.push_back(first);
  }
  return out;
}

// The first of each host, then the second of each, and so on.
std::vector<int> RingOver(const std::vector<int>& hosts) {
  std::map<std::pair<int, int>, int> places;  // by place in its host, and host
  for (int rank = 0; rank < static_cast<int>(hosts.size()); ++rank) {
    const int host = hosts[static_cast<std::size_t>(rank)];
    const auto before = std::count(hosts.begin(), hosts.begin() + rank, host);
    places[{static_cast<int>(before), host}] = rank;
  }
  std::vector<int> out;
  out.reserve(places.size());
  for (const auto& [place, rank] : places) out.push_back(rank);
  return out;
}

}  // namespace

std::vector<int> Layout::MirrorsOf(int rank) const {
  std::vector<int> out;
  for (int next = 1; next <= std::min(mirrors, members - 1); ++next) {
    out.push_back(Along(ring, rank, next));
  }
  return out;
}

std::vector<int> Layout::PartsAt(int column, int rank) const {
  const auto& owners = At(column).owners;
  std::vector<int> out;
  for (int back = 0; back <= std::min(mirrors, members - 1); ++back) {
    const auto found = std::ranges::find(owners, Along(ring, rank, -back));
    if (found != owners.end()) out.push_back(static_cast<int>(found - owners.begin()));
  }
  return out;
}

// Where nobody else is left, servers compute, and workers keep the parameters themselves.
Layout LayoutFor(const Strategy& strategy, const View& view, int mirrors) {
  const Grid& grid = strategy.grid;
  Layout out;
  out.members = static_cast<int>(view.members.size());
  out.mirrors = mirrors;
  out.hosts = HostsOf(view);
  out.ring = RingOver(out.hosts);
  std::vector<int> servers, workers;
  for (int rank = 0; rank < out.members; ++rank) {
    const bool server = view.IsServer(view.members[static_cast<std::size_t>(rank)].id);
    (strategy.servers > 0 && server ? servers : workers).push_back(rank);
  }
  if (workers.empty()) workers = servers;
  if (static_cast<int>(servers.size()) > strategy.servers) {
    servers.resize(static_cast<std::size_t>(strategy.servers));
  }
  const auto runs = RunsFor(static_cast<int>(workers.size()), grid.cells());
  out.columns.resize(static_cast<std::size_t>(grid.columns()));
  for (int column = 0; column < grid.columns(); ++column) {
    auto& at = out.columns[static_cast<std::size_t>(column)];
    const int begin = column * grid.data;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const int first = std::max(runs[i].first - begin, 0);
      const int last = std::min(runs[i].last - begin, grid.data);
      if (first >= last) continue;
      at.computers.push_back(workers[i]);
      at.runs.push_back({first * grid.micro, last * grid.micro});
    }
    at.owners = servers.empty() ? at.computers : servers;
  }
  return out;
}

std::vector<ShardRange> LaneRuns(ShardRange run, int lanes) {
  std::vector<ShardRange> out;
  for (const auto& lane : RunsFor(lanes, run.size())) {
    if (lane.size() > 0) out.push_back({run.first + lane.first, run.first + lane.last});
  }
  return out;
}

}  // namespace muster::train
