// Replay: everything the engine saw, in one file, decided again offline.
//
// A recording is the state from which the cluster was built and every event since. Replaying feeds
// the events to the same EngineView that the daemon uses and asks the engine where the journal says
// it was asked; its plan must be what the journal says was decided. The first difference is
// reported, with the events around it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sim/engine_view.h"

namespace muster::sim {

struct RecordedEvent {
  std::int64_t at_ms = 0;
  std::string body;  // model::EncodeEvent
};

struct Recording {
  std::string state;  // state::State::Encode
  std::int64_t built_ms = 0;
  std::vector<model::Topology> topologies;
  std::vector<RecordedEvent> records;
};

std::string EncodeRecording(const Recording& recording);
Result<Recording> DecodeRecording(std::string_view bytes);

struct ReplayReport {
  std::int64_t events = 0;
  std::int64_t cycles = 0;
  std::int64_t decisions = 0;
  bool same = true;
  std::string difference;  // the first one
};

Result<ReplayReport> Replay(const Recording& recording);

}  // namespace muster::sim
