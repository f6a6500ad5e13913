// A proving engine that says by NVTX alone what a post-mortem needs: who waits for the GPU's lock, who holds it, which
// stage runs, and for which partition. Three workers, one lock; the work is counting.
//
//   g++ -std=c++17 -O2 -pthread -I INCLUDE_OF_nvidia-nvtx engine.cpp -ldl -o engine
//   nsys profile -t cuda,nvtx,osrt --cuda-memory-usage=true ./engine
//
// Without a profiler the ranges cost a few nanoseconds each and nothing is written.

#include <nvtx3/nvtx3.hpp>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

struct cuzk {
    static constexpr char const* name{"cuzk"};
};
struct of_call {
    static constexpr char const* name{"call"};
    static constexpr uint32_t id{1};
};
struct of_gpu {
    static constexpr char const* name{"gpu"};
    static constexpr uint32_t id{2};
};
struct of_cpu {
    static constexpr char const* name{"cpu"};
    static constexpr uint32_t id{3};
};

using range = nvtx3::scoped_range_in<cuzk>;

template <typename Category>
nvtx3::event_attributes in_category(char const* text) {
    return nvtx3::event_attributes{nvtx3::message{text}, nvtx3::named_category_in<cuzk>::get<Category>()};
}

// A mutex whose waits and holds are ranges: the wait ends when the lock is taken, the hold when it is given back.
class traced_lock {
public:
    explicit traced_lock(std::string const& name) : wait_{"lock:" + name + " wait"}, hold_{"lock:" + name + " hold"} {}

    void lock() {
        {
            range wait{wait_};
            mutex_.lock();
        }
        nvtxDomainRangePushEx(nvtx3::domain::get<cuzk>(), nvtx3::event_attributes{hold_}.get());
    }

    void unlock() {
        nvtxDomainRangePop(nvtx3::domain::get<cuzk>());
        mutex_.unlock();
    }

private:
    std::mutex mutex_;
    nvtx3::registered_string_in<cuzk> wait_, hold_;
};

std::atomic<uint64_t> counted{0};

void work(int amount) {
    for (int i = 0; i < amount; ++i) counted.fetch_add(1, std::memory_order_relaxed);
}

void prove(traced_lock& gpu, int proof, int partition) {
    std::string const text = "prove_partition p" + std::to_string(proof) + "." + std::to_string(partition);
    range call{in_category<of_call>(text.c_str())};
    {
        range stage{in_category<of_cpu>("prep_msm")};
        work(20000);
    }
    {
        std::lock_guard<traced_lock> held{gpu};
        range stage{in_category<of_gpu>("ntt_h")};
        work(50000);
    }
    range stage{in_category<of_cpu>("b_g2_msm")};
    work(20000);
}

int main() {
    constexpr int workers = 3, partitions = 4;
    traced_lock gpu{"gpu"};
    std::vector<std::thread> threads;
    for (int worker = 0; worker < workers; ++worker) {
        threads.emplace_back([&gpu, worker] {
            for (int partition = 0; partition < partitions; ++partition) prove(gpu, worker, partition);
        });
    }
    for (auto& thread : threads) thread.join();
    std::printf("%d partitions, %llu steps\n", workers * partitions,
                static_cast<unsigned long long>(counted.load()));
}
