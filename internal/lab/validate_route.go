package lab

import "github.com/posthorn/posthorn"

// Who is served where.

// validG1: after a gateway died everybody it served is online again, with nothing lost (stores).
func validG1() validator {
	return validator{posthorn.G1, func(h []Record, t *Tables) []string {
		var p problems
		moved := 0
		for _, d := range devices(h) {
			last, lost := "", false
			for _, r := range d.lines {
				if r.What == State && (r.Type == "online" || r.Type == "offline") {
					lost = lost || last == "online" && r.Type == "offline"
					last = r.Type
				}
			}
			if lost {
				moved++
			}
			if last != "" && last != "online" {
				p.add("%s is %s at the end", d.device, last)
			}
		}
		if moved == 0 {
			p.add("nobody has lost its gateway, so nothing is shown")
		}
		p.checkStores(h, t)
		return p
	}}
}

// validI1: once a device was welcomed with an install, whatever an older one says afterwards is refused, and no cursor of
// an install stands above what that install has confirmed.
func validI1() validator {
	return validator{posthorn.I1, func(h []Record, _ *Tables) []string {
		var p problems
		newest := map[string]int64{} // by device
		by := map[string]int64{}     // install of each connection
		asked := map[[2]string]bool{}
		confirmed := map[string]map[int64]int64{}
		refusals := 0
		for _, r := range h {
			d := r.device()
			switch {
			case r.frame(In, "welcome"):
				by[r.Who], newest[d] = r.Install, max(newest[d], r.Install)
			case r.frame(Out, "ack"):
				asked[[2]string{r.Who, r.RID}] = r.RID != "" && by[r.Who] < newest[d]
				if confirmed[d] == nil {
					confirmed[d] = map[int64]int64{}
				}
				confirmed[d][by[r.Who]] = max(confirmed[d][by[r.Who]], r.Seq)
			case r.frame(In, "acked") && asked[[2]string{r.Who, r.RID}]:
				p.add("%s was told delivered %d as install %d, and install %d had been welcomed", r.Who, r.Delivered, by[r.Who], newest[d])
			case r.What == In && r.Code == string(posthorn.CodeStaleInstall):
				refusals++
			case r.What == Cursor && r.Delivered > confirmed[d][r.Install]:
				p.add("the cursor of install %d of %s is %d, and that install has confirmed %d", r.Install, d, r.Delivered, confirmed[d][r.Install])
			}
		}
		if refusals == 0 {
			p.add("nothing that an old install said was refused, so nothing is shown")
		}
		return p
	}}
}
