// `muster sim pooling`: a trace under fixed quotas, under guaranteed ones and with elastic jobs.
//
// A row a way for people, everything for programs; with a folder also a page with plots, under the
// rules of `sim report`. The same file and sizes print the same.
#pragma once

#include <cstdint>
#include <string>

#include "cli/verbs.h"

namespace muster::cli {

struct PoolingWords {
  std::string workload;
  std::string percentiles = "95";  // with commas between them
  std::int64_t node_count = 0;     // instead of them
  std::int64_t gpus_per_node = 8;
  std::string to;  // a folder; empty: none
};

int PoolSim(const PoolingWords& words, const Common& common);

}  // namespace muster::cli
