// CaseParser: turns the lines of a case file into a Case.
//
// One function per verb. What a line leaves out has the value that docs/scenarios.md gives; a job
// goes to the only leaf queue where there is one, and a file without queues has one called `main`
// that is promised everything.
#pragma once

#include <string>
#include <string_view>

#include "sim/case_file.h"

namespace muster::sim {

class CaseParser {
 public:
  explicit CaseParser(std::string id) { out_.id = std::move(id); }

  Result<Case> Parse(std::string_view text);

 private:
  bool ParseSetup(const CaseWords& words);
  bool ParseScript(const CaseWords& words);
  void ParseRule(LineReader& line);
  void ParsePolicy(LineReader& line);
  void ParseTopology(LineReader& line);
  void ParseNodes(LineReader& line);
  void ParseGpus(LineReader& line, model::Node& node);
  void ParseQueue(LineReader& line);
  void ParseJob(LineReader& line);
  void ParseRequest(LineReader& line, model::Job& job, model::Role& role);
  void ParseCycle(LineReader& line, bool settle);
  void ParseOrder(LineReader& line, CaseOrderKind kind);
  void ParseSpeed(LineReader& line);
  void ParseExpect(LineReader& line);
  void ParseExpectJob(LineReader& line);
  void ParseExpectQueue(LineReader& line);
  void ParseExpectPlan(LineReader& line);
  void ParseExpectWhy(LineReader& line);
  void Complete();
  void Step(const LineReader& line, CaseAct act) {
    out_.steps.push_back({line.line(), std::move(act)});
  }

  Case out_;
  CaseProblems problems_;
};

}  // namespace muster::sim
