// EventText: what an event says, as a sentence for people.
//
// Every kind has a sentence of its own; one that a newer daemon has invented is told by its plain
// facts. What is of use to the daemon alone (keys of requests, numbers of starts, hashes) is never
// shown. The job is left out: whoever prints the sentence puts it in front.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace muster::cli {

// Of an event of the API: {"kind": ..., "facts": {...}}.
std::string SentenceOf(const nlohmann::json& event);

// "job 7 is held; `muster release 7` lets it go", in three pieces, so that the phase can have its
// colour. Of an explanation of the API; `who` is how the job is called.
struct Explained {
  std::string before, phase, after;
};
// When a job that waits will start: "likely in 25m, nine times out of ten within 2h".
std::string TellStart(const nlohmann::json& estimate);
Explained TellWhy(const std::string& who, const nlohmann::json& explanation);

// Why a worker or a job had to stop: "idle-limit" is "it was idle for too long".
std::string WhyText(std::string_view why);

}  // namespace muster::cli
