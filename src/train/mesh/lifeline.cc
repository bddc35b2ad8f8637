#include "train/mesh/lifeline.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <ctime>
#include <utility>
#include <vector>

namespace muster::train {
namespace {

constexpr std::size_t kMostWaited = 127;  // the kernel takes 128, and one is the own

void WakeAll(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool Ended(const Life& life) { return (life.word.load() & FUTEX_OWNER_DIED) != 0; }

}  // namespace

Lifelines::Lifelines(std::function<void(int)> ended) : ended_(std::move(ended)) {
  held_.list.next = &held_.list;
  held_.futex_offset = offsetof(Life, word) - offsetof(Life, next);
  // Signals are for the threads of the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), "muster-life");
  while (owner_.load() == 0) std::this_thread::yield();
}

Lifelines::~Lifelines() {
  stop_ = true;
  Stir();
  thread_.join();
}

void Lifelines::Stir() {
  stirred_.fetch_add(1);
  WakeAll(stirred_);
}

void Lifelines::Add(int key, std::shared_ptr<const void> memory, Life& mine, Life& theirs) {
  {
    const std::lock_guard lock(mutex_);
    mine.next.next = held_.list.next;
    std::atomic_ref(held_.list.next).store(&mine.next);
    mine.word.store(owner_.load() | FUTEX_WAITERS);  // so that the kernel wakes whoever waits
    watched_[key] = {std::move(memory), &mine, &theirs};
  }
  WakeAll(mine.word);
  Stir();
}

void Lifelines::Remove(int key) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = watched_.find(key);
    if (found == watched_.end()) return;
    Unlink(*found->second.mine);
    watched_.erase(found);
  }
  Stir();
}

// A process may be killed at any point of this: the list is whole after each single write.
void Lifelines::Unlink(Life& life) {
  robust_list* at = &held_.list;
  while (at->next != &life.next && at->next != &held_.list) at = at->next;
  if (at->next == &life.next) std::atomic_ref(at->next).store(life.next.next);
}

void Lifelines::Run() {
  syscall(SYS_set_robust_list, &held_, sizeof held_);
  owner_ = static_cast<std::uint32_t>(syscall(SYS_gettid));
  bool waits = true;
  while (!stop_) {
    const std::uint32_t seen = stirred_.load();
    std::map<int, Watched> peers;  // a copy: their memory stays while it is waited for
    std::vector<int> ended;
    {
      const std::lock_guard lock(mutex_);
      for (auto& [key, watched] : watched_) {
        if (watched.ended) continue;
        watched.ended = Ended(*watched.theirs);
        if (watched.ended) {
          ended.push_back(key);
        } else if (peers.size() < kMostWaited) {
          peers.emplace(key, watched);
        }
      }
    }
    for (const int key : ended) ended_(key);
    if (!waits) peers.clear();
    waits = WaitFor(peers, stirred_, seen) && waits;
  }
  const std::lock_guard lock(mutex_);  // an orderly end is told by the socket
  held_.list.next = &held_.list;
}

// Until one of them has ended or has begun, or this was stirred. False: the kernel cannot.
bool Lifelines::WaitFor(const std::map<int, Watched>& peers, std::atomic<std::uint32_t>& stirred,
                        std::uint32_t seen) {
  if (peers.empty()) {
    syscall(SYS_futex, &stirred, FUTEX_WAIT, seen, nullptr, nullptr, 0);
    return true;
  }
  std::vector<futex_waitv> words;
  words.reserve(peers.size() + 1);
  const auto add = [&words](std::atomic<std::uint32_t>& word, std::uint32_t value) {
    words.push_back({value, reinterpret_cast<std::uintptr_t>(&word), FUTEX_32, 0});
  };
  add(stirred, seen);
  for (const auto& [key, watched] : peers) {
    const std::uint32_t value = watched.theirs->word.load();
    if ((value & FUTEX_OWNER_DIED) != 0) return true;
    add(watched.theirs->word, value);
  }
  const long done =
      syscall(SYS_futex_waitv, words.data(), words.size(), 0, nullptr, CLOCK_MONOTONIC);
  return done >= 0 || errno == EAGAIN || errno == EINTR;
}

}  // namespace muster::train
