// WaitForecast: when a job that has to wait will start, from what is known when it comes.
//
// From how long jobs of their kind took, and how long those that run have run, it follows when all
// who wait would be served. How that works out depends on the policy, on who comes next and on who
// is stopped, so the answer is that time multiplied by what it turned out to be off by for jobs in
// a like situation: those that have started, and those that still wait, of which it is known that
// it takes longer yet. Where few waits are known, a guess of that factor speaks beside them.
// Whoever asks counts only GPUs that the job could take, those of its types.
// The bound is widened by as much as bounds of that line have failed lately, and a bound that has
// passed counts as failed at once. A wrong forecast costs nobody anything: no decision asks it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace muster::engine {

// Of jobs of one kind, the latest ones.
class Runtimes {
 public:
  explicit Runtimes(std::size_t most) : most_(most) {}
  void Add(double seconds);
  std::size_t size() const { return sorted_.size(); }
  // The chance that one which has run for so long ends within so much more.
  double EndsWithin(double ran_s, double more_s) const;

 private:
  std::size_t most_;
  std::deque<double> order_;
  std::vector<double> sorted_;
};

class WaitForecast {
 public:
  struct Running {
    std::string kind;  // jobs of one kind take about as long
    double ran_s = 0;
    std::int64_t gpus = 0;
    double ends_s = -1;  // from now, where it has said or others like it have shown; -1: not known
  };
  struct Question {
    std::uint64_t job = 0;
    std::string line;  // those that wait together: a queue, and the GPU types where it names some
    std::int64_t gpus = 0;
    std::int64_t missing_gpus = 0;  // until all who wait, and this one, could run
    std::int64_t ahead = 0;         // jobs of its line that wait
    double longest_wait_s = 0;      // of those so far
  };
  struct Answer {
    double likely_s = 0;
    double by_s = 0;      // nine times out of ten
    double served_s = 0;  // when all who wait are, by how long jobs run alone; of Look
  };

  // Jobs of one queue with one GPU, or with several, of one type take about as long.
  static std::string KindOf(const std::string& queue, std::int64_t gpus,
                            const std::string& type = {}) {
    return (gpus > 1 ? "+" : "1") + queue + (type.empty() ? "" : "\n" + type);
  }

  // Remembers the question, to learn from what comes of it.
  Answer Ask(double now_s, const Question& question, std::span<const Running> running);
  // The same answer, and nothing is remembered.
  Answer Look(double now_s, const Question& question, std::span<const Running> running) const;
  std::size_t waits() const { return past_.size(); }  // that it has learned from
  void Started(double now_s, std::uint64_t job);
  void Ended(const std::string& kind, double ran_s);
  void Forget(std::uint64_t job) { open_.erase(job); }  // it will not start any more

 private:
  using Situation = std::array<double, 4>;
  struct Open {
    std::string line;
    Situation situation{};
    double asked_s = 0;
    double by_s = 0;
    bool failed = false;
  };
  struct Past {
    Situation situation{};
    double waited_s = 0;
  };

  struct Factor {
    double log = 0;
    bool over = true;  // else it is more than that: the job still waits
  };

  Situation SituationOf(double now_s, const Question& question,
                        std::span<const Running> running) const;
  std::vector<Factor> FactorsLike(double now_s, const Situation& situation) const;
  static double QuantileOf(const std::vector<Factor>& sorted, double share);
  Answer AnswerFor(double now_s, const Question& question, const Situation& situation) const;
  double LongestWait(double now_s) const;
  double Served(double gpus, std::span<const Running> running) const;
  const Runtimes& RuntimesOf(const std::string& kind) const;
  void LetPass(double now_s);
  void Learn(const std::string& line, bool failed);

  std::map<std::string, Runtimes> runtimes_;
  Runtimes all_runtimes_{4096};
  std::deque<Past> past_;
  std::map<std::uint64_t, Open> open_;
  std::multimap<double, std::uint64_t> due_;          // by the end of their bound
  std::map<std::string, std::deque<double>> starts_;  // by line: the latest
  std::map<std::string, double> widened_;             // by line: logarithm of the factor
  double widened_everywhere_ = 0;
};

}  // namespace muster::engine
