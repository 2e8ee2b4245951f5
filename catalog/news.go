package catalog

import (
	"fmt"
	"strconv"
	"strings"
)

// chainNews is the notification that a chain has been refined by this proxy.
func (c *Catalog) chainNews(chain int) string { return fmt.Sprintf("chain %d %s", chain, c.instance) }

// hear takes a notification. A chain that another proxy has refined is read
// again when it is next used: what its copy here says of risks is old. It
// returns whether the news are of anything else.
func (c *Catalog) hear(news string) (others bool) {
	word, rest, _ := strings.Cut(news, " ")
	if word != "chain" {
		return true
	}
	number, instance, _ := strings.Cut(rest, " ")
	chain, err := strconv.Atoi(number)
	if err != nil || instance == c.instance {
		return false
	}
	c.forgetChain(chain)
	return false
}
