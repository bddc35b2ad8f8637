// What a case expects, held against the state of the Cluster.
//
// One sentence for each thing that differs, with what was seen and what was expected; no sentence
// means that the expectation holds. Reads only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/cluster.h"
#include "model/plan.h"
#include "sim/case_file.h"

namespace muster::sim {

class CaseJudge {
 public:
  explicit CaseJudge(engine::Cluster& cluster) : cluster_(cluster) {}

  // A cycle has run.
  void Note(const model::Plan& plan, std::int64_t now_ms);

  std::vector<std::string> Differences(const ExpectJob& want) const;
  std::vector<std::string> Differences(const ExpectQueue& want) const;
  std::vector<std::string> Differences(const ExpectPlan& want) const;
  std::vector<std::string> Differences(const ExpectWhy& want) const;

 private:
  struct Seen;
  Seen Look(engine::JobId job) const;
  void CompareCounts(const ExpectJob& want, const Seen& seen, std::vector<std::string>& out) const;
  void ComparePlaces(const ExpectJob& want, const Seen& seen, std::vector<std::string>& out) const;
  void CompareCause(const ExpectJob& want, engine::JobId job, std::vector<std::string>& out) const;

  engine::Cluster& cluster_;
  std::int64_t now_ms_ = 0;  // of the last cycle
  model::Plan last_;
  std::map<model::ActionKind, std::int64_t> total_;
};

}  // namespace muster::sim
