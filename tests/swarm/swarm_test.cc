// The production controller under thousands of seeded disasters.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>

#include "swarm_run.h"

namespace muster::swarm {
namespace {

// Only for a check that aborts: nothing else can say then which seed it was.
volatile std::sig_atomic_t running = 0;

void SayWhich(int /*signal*/) {
  char text[] = "MUSTER_SWARM_SEED=0000000000\n";
  auto left = static_cast<unsigned long>(running);
  for (std::size_t at = sizeof(text) - 3; text[at] == '0'; --at, left /= 10) {
    text[at] = static_cast<char>('0' + left % 10);
  }
  (void)!::write(2, text, sizeof(text) - 1);
}

std::uint64_t Setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(Swarm, NothingIsLostDoubledOrStuckWhateverFails) {
  const auto one = Setting("MUSTER_SWARM_SEED", 0);
  const auto first = one != 0 ? one : Setting("MUSTER_SWARM_FROM", 1);
  const auto count = one != 0 ? 1 : Setting("MUSTER_SWARM_SEEDS", 300);
  std::signal(SIGABRT, SayWhich);
  Tally sum;
  int failed = 0;
  for (auto seed = first; seed < first + count && failed < 3; ++seed) {
    running = static_cast<std::sig_atomic_t>(seed);
    SwarmRun run(seed);
    run.Keep(Setting("MUSTER_SWARM_LINES", 40));
    run.Play();
    const auto& tally = run.tally();
    sum.events += tally.events;
    sum.jobs += tally.jobs;
    sum.launches += tally.launches;
    sum.crashes += tally.crashes;
    sum.recoveries += tally.recoveries;
    sum.replayed += tally.replayed;
    sum.preemptions += tally.preemptions;
    if (run.story().wrong.empty()) continue;
    ++failed;
    std::string lines;
    for (const auto& line : run.story().lines) lines += "  " + line + "\n";
    ADD_FAILURE() << lines << "seed " << seed << ": " << run.story().wrong
                  << "\nMUSTER_SWARM_SEED=" << seed << " swarm_test";
  }
  std::signal(SIGABRT, SIG_DFL);
  RecordProperty("events", std::to_string(sum.events));
  if (std::getenv("MUSTER_SWARM_SEEDS") != nullptr) {
    std::cerr << count << " seeds: " << sum.jobs << " jobs, " << sum.launches << " launches, "
              << sum.events << " events, " << sum.crashes << " crashes, " << sum.recoveries
              << " recoveries, " << sum.preemptions << " preemptions, " << sum.replayed
              << " decisions replayed\n";
  }
  // A swarm in which nothing happens would prove nothing.
  if (one != 0 || failed > 0) return;
  EXPECT_GT(sum.launches, 0);
  EXPECT_GT(sum.crashes + sum.recoveries, static_cast<std::int64_t>(count));
}

}  // namespace
}  // namespace muster::swarm
