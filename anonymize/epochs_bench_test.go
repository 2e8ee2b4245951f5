package anonymize_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// shownBlock is a block of a release that lives on.
type shownBlock struct {
	loss          float64 // of each of its people
	members, left int
}

// releaseAlone partitions people by themselves, and says what becomes of each.
func releaseAlone(b *testing.B, d *blockData, people []int, least int) []*shownBlock {
	b.Helper()
	leaves := make([][]uint32, len(d.columns))
	for c := range leaves {
		for _, person := range people {
			leaves[c] = append(leaves[c], d.leaves[c][person])
		}
	}
	table, err := anonymize.NewTable(d.columns, leaves, nil)
	if err != nil {
		b.Fatal(err)
	}
	p, err := anonymize.Root(context.Background(), table, anonymize.RootPlan{Requirements: blockK(least)})
	if err != nil {
		b.Fatal(err)
	}
	blocks := make([]*shownBlock, p.Blocks())
	for i := range blocks {
		blocks[i] = &shownBlock{members: p.Subjects(uint32(i))}
		for c, column := range d.columns {
			blocks[i].loss += column.Hierarchy.Share(p.Cover(uint32(i), c)) / float64(len(d.columns))
		}
	}
	of := make([]*shownBlock, len(people))
	for i, tuple := range table.TupleOfRow() {
		of[i] = blocks[p.BlockOf()[tuple]]
	}
	return of
}

// BenchmarkLivingRelease lets 0.2 % of 20,000 people go and as many come with each of
// 100 copies, for cohorts of several sizes, and roots that are made for several k while
// k = 5 decides who may go. It reports the mean loss of what is shown in the end, beside
// that of a root over those who are there then, how many copies newcomers waited for, and
// the share of rows of people who have left.
func BenchmarkLivingRelease(b *testing.B) {
	const k, start, epochs, flow = 5, 20_000, 100, 40
	d := loadBlockData(b, "arx/adult", "adult", 7)
	for _, least := range []int{5, 10, 20, 40} {
		for _, cohort := range []int{100, 250, 500, 1000} {
			b.Run(fmt.Sprintf("root of %d, cohorts of %d", least, cohort), func(b *testing.B) {
				for range b.N {
					rng := rand.New(rand.NewPCG(1, 2))
					order := rng.Perm(len(d.leaves[0]))
					people, next := order[:start:start], start
					shown := releaseAlone(b, d, people, least)
					there := make([]int, start)
					for i := range there {
						there[i] = i
					}
					var waiting []int
					waits, arrived := 0, 0
					for range epochs {
						for range flow {
							i := rng.IntN(len(there))
							shown[there[i]].left++
							there[i] = there[len(there)-1]
							there = there[:len(there)-1]
						}
						waiting = append(waiting, order[next:next+flow]...)
						next += flow
						if len(waiting) < cohort {
							waits += len(waiting)
							continue
						}
						arrived += len(waiting)
						for i, of := range releaseAlone(b, d, waiting, least) {
							shown, there = append(shown, of), append(there, len(people)+i)
						}
						people, waiting = append(people, waiting...), nil
					}
					seen := make(map[*shownBlock]bool)
					rows, stale, loss := 0, 0, 0.0
					for _, of := range shown {
						if seen[of] {
							continue
						}
						seen[of] = true
						left := 0 // those who may not go
						if of.left < k || of.members-of.left > 0 && of.members-of.left < k {
							left = of.left
						}
						n := of.members - of.left + left
						rows, stale, loss = rows+n, stale+left, loss+of.loss*float64(n)
					}
					var now []int
					for _, i := range there {
						now = append(now, people[i])
					}
					once := 0.0
					for _, of := range releaseAlone(b, d, now, k) {
						once += of.loss / float64(len(now))
					}
					b.ReportMetric(loss/float64(rows), "loss")
					b.ReportMetric(loss/float64(rows)/once, "of-a-root")
					b.ReportMetric(float64(waits)/float64(arrived), "copies-waited")
					b.ReportMetric(100*float64(stale)/float64(rows), "%-left")
				}
			})
		}
	}
}
